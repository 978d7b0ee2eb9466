"""A language model as the second reader of exchanges: it confirms, completes and repairs what the product read."""
