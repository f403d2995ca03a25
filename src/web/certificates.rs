//! Explains errors of TLS certificates in words, with the remedy.

/// Parts of the messages of the TLS library, and what they mean. The first one that is in a message
/// counts.
const PROBLEMS: &[(&str, &str)] = &[
    (
        "CaUsedAsEndEntity",
        "its certificate is a CA certificate, which is not accepted for a server: make one with basicConstraints=CA:FALSE \
         (openssl req -x509 … -addext basicConstraints=critical,CA:FALSE)",
    ),
    (
        "UnknownIssuer",
        "its certificate is not signed by an authority that is trusted here: trust the authority (SSL_CERT_FILE, ca_file of a \
         provider, sslrootcert of the store)",
    ),
    ("ot valid for name", "its certificate is for another name: use a name that is in the certificate"),
    ("NotValidForName", "its certificate is for another name: use a name that is in the certificate"),
    ("xpired", "its certificate has expired: renew it"),
    ("ot valid yet", "its certificate is not valid yet: check the clocks of both machines"),
    ("NotValidYet", "its certificate is not valid yet: check the clocks of both machines"),
];

/// Explains an error message about a certificate; `None` for other messages.
pub(crate) fn certificate_problem(message: &str) -> Option<&'static str> {
    let is_certificate = message.contains("certificate");
    PROBLEMS.iter().find(|(part, _)| is_certificate && message.contains(part)).map(|(_, words)| *words)
}

/// Returns whether a text is a result of [`certificate_problem`].
pub(crate) fn is_certificate_problem(text: &str) -> bool {
    PROBLEMS.iter().any(|(_, words)| *words == text)
}
