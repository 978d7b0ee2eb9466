"""Finding what is kept: an index over the words of all events, and answers that say where each came from.

Glossary
    item        one kept text: a line of the document, a fact, a message, a turn. It stands at one place of the log.
    term        what is looked for: a word of a script with spaces, two characters or one of a script without.
    cover       the share of a query's weight that an item holds, 0 to 1.
    turn        an item that somebody said in a conversation; its neighbours are what was said before and after it.
"""
