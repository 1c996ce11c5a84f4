"""What the measurements of training and of decoding share."""
