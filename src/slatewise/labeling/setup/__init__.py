"""A new labeling project from pictures, texts, tables, label lists or tasks of Label Studio.

``item_files.py`` finds items, ``label_files.py`` reads labels, ``item_matrices.py`` features and scores,
``project_folder.py`` puts them into a folder that appears whole or not at all; ``demo.py`` draws a project.
"""
