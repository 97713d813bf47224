"""Tables as people have them: all data sets of four packages, audited and compared cell by cell."""
