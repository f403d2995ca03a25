//! Access to the environment variables, which only `config` and `main` read.

/// Returns the value of an environment variable. Empty values count as unset.
pub(crate) type Variables<'a> = &'a (dyn Fn(&str) -> Option<String> + Sync);

/// Returns the value of a variable without surrounding blanks. An empty value counts as unset.
pub(super) fn set(environment: Variables<'_>, name: &str) -> Option<String> {
    environment(name).map(|value| value.trim().to_owned()).filter(|value| !value.is_empty())
}
