"""One file per measuring verb: plan, launch, save, summarise."""
