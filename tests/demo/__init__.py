"""`make demo`: two devices and a cloud on this machine; an edit travels, the network fails, nothing is lost."""
