"""Search over the words and the meaning of all events; every hit names its source.

An item is one indexed text: a line of the document, a fact, a message, a turn. A term is a word, or one or two
characters of a script without spaces. Cover is the share of a query's weight that an item has, 0 to 1.
"""
