"""What a model is: layers, experts and bytes, from a GGUF file or a file of facts."""
