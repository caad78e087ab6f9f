"""The commands of `python -m kismet_env`, one file each: options (`Config`) and what is done with them (`main`)."""
