"""Builds of images: the engine's builder, and isolated builds whose steps run in the sandbox."""
