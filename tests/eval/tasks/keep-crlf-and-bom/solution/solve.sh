#!/bin/bash
set -e
sed -i -e 's/^Version=2\.3\.1/Version=2.4.0/' -e 's/^Source=lumen-2\.3\.1/Source=lumen-2.4.0/' -e 's/^Folder=.*/&\nIcon=lumen.ico\r/' installer/setup.ini
sed -i 's/^set VERSION=2\.3\.1/set VERSION=2.4.0/' installer/build.bat
