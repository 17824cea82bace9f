"""What texts stand for: numbers, dates and missing values, however people spell them."""
