"""Tag scenes whose tags come together or exclude each other, then ask the best questions."""

# ---
import numpy as np

from slatewise import CStarRanker, datasets

scenes = datasets.make_label_scenes(n_rows=1500, random_state=0)
train, test = slice(0, 1000), slice(1000, None)

alone = CStarRanker(core=0).fit(scenes.X[train], scenes.Y[train])
joint = CStarRanker().fit(scenes.X[train], scenes.Y[train])  # chooses how many labels interact, and which
print(f"break-even precision: alone {alone.score(scenes.X[test], scenes.Y[test]):.3f}")
print(f"                      joint {joint.score(scenes.X[test], scenes.Y[test]):.3f}")
print(f"certified: {joint.lower_bound_:.1f} <= optimum <= {joint.objective_:.1f}")

# Ask one question per row: the label the model is least sure about, given what is known.
known = np.full(scenes.Y[test].shape, -1)
question = joint.next_question(scenes.X[test], known)
rows = np.arange(len(question))
known[rows, question] = scenes.Y[test][rows, question]
print(joint.rank(scenes.X[test], known=known))  # the most probable labels first
print(joint.predict(scenes.X[test]).sum(axis=1)[:10])  # as many as the expected F1 asks for

joint.save("scenes.safetensors")  # one file, every byte checked; slatewise.load gives the ranker back
