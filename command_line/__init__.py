"""What all commands share: how they end, and how they read text."""
