"""Lines of real logs, failures and harmless ones, and how the program takes each of them."""
