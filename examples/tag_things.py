"""Tag photos: from a CSV to a model, ranked tags, questions and a file."""

# ---
import csv

import numpy as np

import slatewise
from slatewise import CStarRanker, data, datasets

# A table as people keep it: an id, some numbers, the tags of each row in one column. Yours comes from elsewhere.
NAMES = np.array(["beach", "boat", "city", "forest", "night", "people", "sea", "sky", "snow", "sunset"])
made = datasets.make_label_scenes(400, n_labels=10, n_features=6, n_groups=2, random_state=0)
with open("photos.csv", "w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["photo", *(f"f{number}" for number in range(6)), "tags"])
    for row, (x, y) in enumerate(zip(made.X, made.Y, strict=True)):
        table.writerow([f"{row:03d}.jpg", *x, "|".join(NAMES[y > 0])])

photos = data.read_tags("photos.csv", tags="tags", separator="|", id="photo")  # strict: file:line:column if it is wrong
new = slice(300, None)
ranker = CStarRanker().fit(photos.X[:300], photos.Y[:300], label_names=photos.label_names)
print(f"break-even precision: {ranker.score(photos.X[new], photos.Y[new]):.3f}")

# The best tags of each new photo, by name.
answer = ranker.rank(photos.X[new], k=3)
print(photos.ids[new][0], dict(zip(answer[0].tolist(), answer.list_scores(0).round(2).tolist(), strict=True)))

# One question about the first of them, and what its answer changes.
first = photos.X[new][:1]
question = ranker.label_names_[ranker.next_question(first, known=[{}])[0]]
for said in (1, 0):
    print(f"{question}? {'yes' if said else 'no'}: {', '.join(ranker.rank(first, k=3, known=[{question: said}])[0])}")

ranker.save("photos.safetensors")  # names and all, every byte checked
print(slatewise.load("photos.safetensors").label_names_.tolist())
