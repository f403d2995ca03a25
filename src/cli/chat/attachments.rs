//! Attachments of the next message: files, pasted paths of images, and the image in the clipboard.

use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::state::Chat;
use crate::cli::run::attached_files;
use crate::content::Part;
use crate::error::{Error, Result};
use crate::limits;
use crate::process::Command;
use crate::workspace::image_type;

/// Programs that print the image in the clipboard: Wayland, X11, macOS.
const CLIPBOARD: &[&[&str]] = &[
    &["wl-paste", "--no-newline", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"],
    &["pngpaste", "-"],
];

impl Chat {
    /// Attaches a file. A relative path is resolved against the directory of this process.
    pub(super) async fn attach_file(&mut self, path: &str) -> Result<()> {
        let app = self.session.client.app();
        let path = app.cwd.join(path);
        let part = attached_files::read_file(&path, &app.services.launcher).await?;
        self.attach(part, path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default());
        Ok(())
    }

    fn attach(&mut self, part: Part, name: String) {
        self.attached.push(part);
        self.view.attached.push(name);
    }

    pub(super) fn clear_attachments(&mut self) {
        (self.attached, self.view.attached) = (Vec::new(), Vec::new());
    }

    /// Removes the attachment with a name, or all of them if the name is empty.
    pub(super) fn detach(&mut self, name: &str) -> Result<()> {
        let mut found = false;
        for at in (0..self.attached.len()).rev() {
            if !name.is_empty() && self.view.attached[at] != name {
                continue;
            }
            self.attached.remove(at);
            self.view.attached.remove(at);
            found = true;
        }
        if found { Ok(()) } else { Err(Error::invalid_params(format!("/detach: no attachment {name}"))) }
    }

    /// Inserts a pasted text. The path of an image, which a terminal pastes for a dropped file, is
    /// attached.
    pub(super) async fn paste(&mut self, text: &str) {
        let image = pasted_path(text).filter(|path| path.is_absolute() && path.is_file() && is_image(path));
        if let Some(image) = image
            && self.attach_file(&image.to_string_lossy()).await.is_ok()
        {
            return;
        }
        self.view.composer.paste(text);
    }

    /// Attaches the image in the clipboard, if a program for it is installed.
    pub(super) async fn attach_clipboard(&mut self) -> Result<()> {
        let app = self.session.client.app().clone();
        for words in CLIPBOARD {
            let command = Command::program(words.iter().copied(), &app.cwd);
            let (mut child, input) = app.services.launcher.spawn_piped(&command)?;
            drop(input);
            let mut bytes = Vec::new();
            while bytes.len() <= limits::IMAGE_BYTES_MAX && child.output.read(&mut bytes).await.unwrap_or(0) > 0 {}
            let ended = child.end().await;
            if let (Ok(_), Some(kind)) = (ended, image_type(&bytes)) {
                if bytes.len() > limits::IMAGE_BYTES_MAX {
                    return Err(Error::invalid_params("the image in the clipboard is too large"));
                }
                let part = Part::Image { mime_type: kind.into(), data: STANDARD.encode(&bytes) };
                self.attach(part, "image of the clipboard".into());
                return Ok(());
            }
        }
        Err(Error::invalid_params("no image in the clipboard was found").hint("wl-paste, xclip or pngpaste must be installed"))
    }
}

/// Returns the path that a pasted line names, without the quotes of a shell.
fn pasted_path(text: &str) -> Option<PathBuf> {
    let line = text.trim();
    if line.contains('\n') || line.len() > 4096 {
        return None;
    }
    let unquoted = line.strip_prefix('\'').and_then(|line| line.strip_suffix('\''));
    Some(unquoted.map_or_else(|| line.replace("\\ ", " "), String::from).into())
}

fn is_image(path: &Path) -> bool {
    let mut first = [0; 16];
    let read = std::fs::File::open(path).and_then(|mut file| std::io::Read::read(&mut file, &mut first));
    read.is_ok_and(|read| image_type(&first[..read]).is_some())
}
