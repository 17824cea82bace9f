"""What is compared, checked and kept on the way to a release."""
