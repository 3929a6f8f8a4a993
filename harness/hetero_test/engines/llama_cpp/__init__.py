"""All that is known of llama.cpp and ik_llama.cpp: flags, devices, server, log."""
