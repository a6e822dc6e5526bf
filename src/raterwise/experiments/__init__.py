"""The papers' experiments on real data; each can be stopped and taken up again."""
