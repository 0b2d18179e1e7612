"""McFee and Lanckriet (2010): tables.py over knn.py, retrieval.py and documents.py."""
