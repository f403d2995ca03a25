grep -c '^def ' src/app.py
