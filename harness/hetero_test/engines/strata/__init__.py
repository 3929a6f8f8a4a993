"""All that is known of Strata: its flags, its devices, its log."""
