"""The judge's rules, and what is run next, each as a test that states it."""
