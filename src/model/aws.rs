//! Access keys of AWS: from the environment, or from a profile of the AWS command line
//! (docs.aws.amazon.com/cli/latest/userguide/cli-configure-files.html).

use std::fmt;
use std::io;
use std::path::PathBuf;

use super::error::{ModelError, Retry};
use super::variables::{Variables, set};
use crate::workspace;

/// Keys that sign requests, and the region of the service. Secrets are never displayed.
#[derive(Clone, PartialEq, Eq)]
pub struct AwsKeys {
    pub access_key: String,
    pub secret_key: String,
    /// The token of temporary keys.
    pub session_token: Option<String>,
    pub region: String,
    /// The environment variable or file that contains the keys.
    pub origin: String,
}

impl fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AwsKeys(from {})", self.origin)
    }
}

/// One of the two files of the AWS command line.
struct ProfileFile {
    path: PathBuf,
    text: String,
}

impl ProfileFile {
    /// Reads the file that `variable` names, or `~/.aws/NAME`. A missing file is empty.
    fn read(variable: &str, name: &str, environment: Variables<'_>) -> Result<ProfileFile, ModelError> {
        let home = || Some(PathBuf::from(set(environment, "HOME")?).join(".aws").join(name));
        let Some(path) = set(environment, variable).map(PathBuf::from).or_else(home) else {
            return Ok(ProfileFile { path: PathBuf::new(), text: String::new() });
        };
        match workspace::read_small_text(&path) {
            Ok(text) => Ok(ProfileFile { path, text }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(ProfileFile { path, text: String::new() }),
            Err(error) => Err(ModelError::new(Retry::Never, format!("reading {}: {error}", path.display())).unreachable()),
        }
    }

    /// Returns a setting of a section. Skips indented lines, which belong to nested settings.
    fn get(&self, section: &str, name: &str) -> Option<String> {
        let mut inside = false;
        for line in self.text.lines() {
            if let Some(header) = line.trim_end().strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
                inside = header.split_whitespace().eq(section.split_whitespace());
            } else if let Some((found, value)) = line.split_once('=').filter(|_| inside)
                && found.trim_end() == name
            {
                return Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            }
        }
        None
    }
}

/// The settings of the selected profile (`AWS_PROFILE`).
pub(super) struct Profile {
    name: String,
    config: ProfileFile,
    credentials: ProfileFile,
}

impl Profile {
    pub(super) fn read(environment: Variables<'_>) -> Result<Profile, ModelError> {
        Ok(Profile {
            name: set(environment, "AWS_PROFILE").unwrap_or_else(|| "default".to_owned()),
            config: ProfileFile::read("AWS_CONFIG_FILE", "config", environment)?,
            credentials: ProfileFile::read("AWS_SHARED_CREDENTIALS_FILE", "credentials", environment)?,
        })
    }

    /// Returns a setting from the file `config`, where only the default profile has no prefix.
    fn configured(&self, name: &str) -> Option<String> {
        let plain = || self.config.get("default", name).filter(|_| self.name == "default");
        self.config.get(&format!("profile {}", self.name), name).or_else(plain)
    }

    /// Returns the region from the environment, else from the profile.
    pub(super) fn region(&self, environment: Variables<'_>) -> Option<String> {
        let variable = set(environment, "AWS_REGION").or_else(|| set(environment, "AWS_DEFAULT_REGION"));
        variable.or_else(|| self.configured("region")).or_else(|| self.credentials.get(&self.name, "region"))
    }

    /// Returns the keys from the environment, else from the profile. Fails with an unreachable
    /// error if there are none.
    pub(super) fn keys(&self, region: &str, environment: Variables<'_>) -> Result<AwsKeys, ModelError> {
        let variable = |name: &str| set(environment, name);
        if let (Some(access_key), Some(secret_key)) = (variable("AWS_ACCESS_KEY_ID"), variable("AWS_SECRET_ACCESS_KEY")) {
            let (session_token, origin) = (variable("AWS_SESSION_TOKEN"), "AWS_ACCESS_KEY_ID".to_owned());
            return Ok(AwsKeys { access_key, secret_key, session_token, region: region.to_owned(), origin });
        }
        let setting = |name: &str| self.credentials.get(&self.name, name).or_else(|| self.configured(name));
        if let (Some(access_key), Some(secret_key)) = (setting("aws_access_key_id"), setting("aws_secret_access_key")) {
            let session_token = setting("aws_session_token");
            let origin = format!("the profile {} in {}", self.name, self.credentials.path.display());
            return Ok(AwsKeys { access_key, secret_key, session_token, region: region.to_owned(), origin });
        }
        let hint = "set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; for a profile with \
                    single sign-on or a role, run: eval \"$(aws configure export-credentials --format env)\"";
        Err(ModelError::new(Retry::Never, "no AWS credentials").hint(hint).unreachable())
    }
}
