"""Times the zoo beside its peers: what `recbert benchmark` runs."""
