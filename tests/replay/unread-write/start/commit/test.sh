python3 -c 'import sys; sys.path.insert(0, "src"); import app; print(app.total([1, 2]))'
