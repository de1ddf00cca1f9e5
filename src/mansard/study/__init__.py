"""``mansard study``: the paper's application measured again, cell by cell, with a report.

``plan`` says which cells there are, ``run`` runs each in a process of its own, ``report`` writes
what the files of a folder say.
"""
