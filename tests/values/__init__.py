"""What the nouns of the road mean for those who use them."""
