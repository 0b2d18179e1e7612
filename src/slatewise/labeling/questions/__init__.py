"""What to ask next and when to stop, of rows whose labels are open: the model's side of labeling, without a project.

``rows.py``                  rows, their label scores and what is known so far: margins or log-odds of every label
``policies.py``              which label to ask next in a row, and which row to label next
``stopping.py``              when a row is done: the probability that no label was missed
``next_question.py``         the three together, for a caller who keeps the answers
``confidence.py``            margins turned into probabilities
``simulation.py``            simulated annotators, and break-even precision after some numbers of questions
``stopping_simulation.py``   questions until a rule stops; the threshold that keeps a promised confidence
"""
