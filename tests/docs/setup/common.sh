# The project in which the blocks of all pages run.
git config --global user.name Ada
git config --global user.email ada@example.com
git config --global init.defaultBranch main
git init -q
mkdir -p src
printf 'fn main() {\n    println!("shop");\n}\n' >src/main.rs
printf 'error: login failed: token expired\n' >login.log
printf 'test:\n\t@echo ok\n' >Makefile
git add -A
git commit -qm 'A shop'
