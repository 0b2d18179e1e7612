"""Labels ranked jointly with a few core labels (Mensink, Verbeek, Caetano 2011)."""
