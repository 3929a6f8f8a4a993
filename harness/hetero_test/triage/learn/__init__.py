"""What measured points teach: priors and points come in, estimates and intervals go out."""
