"""Engine families: each is found, asked, launched and read as its tests say."""
