"""Local recoding: classes peeled off level by level."""
