"""Every block of every page is run or checked: blocks.py reads pages, session.py types them into a shell, tests say what each must hold."""
