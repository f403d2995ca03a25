grep -q sum src/app.py && echo ok
