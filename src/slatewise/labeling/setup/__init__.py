"""A new labeling project from what people have: a folder of pictures, a table of texts, a list of labels.

``item_files.py`` finds items, ``label_files.py`` reads labels, ``item_matrices.py`` features and scores,
``project_folder.py`` puts them into a folder that appears whole or not at all.
"""
