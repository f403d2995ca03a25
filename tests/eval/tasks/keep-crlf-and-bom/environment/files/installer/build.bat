@echo off
rem Builds the installer.
set VERSION=2.3.1
set RUNTIME=2.3.1

if not exist "lumen-%VERSION%.zip" exit /b 1
iscc /DVersion=%VERSION% /DRuntime=%RUNTIME%   setup.ini
echo Built Lumen %VERSION%
