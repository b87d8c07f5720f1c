"""What leaves this machine: presets with their model cards, to hubs and folders."""
