"""What the machine is and what the model is."""
