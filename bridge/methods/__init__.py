"""The methods every door enters at: one table, one row a method, one function in `sync` behind each."""
