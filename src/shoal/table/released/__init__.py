"""What was released: files, texts, and which values each cell stands for."""
