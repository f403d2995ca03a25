//! Remembered permissions for MCP tools apply to one definition of the tool.

use nuncio::internal::config::{AccessKind, Policy, Rule};
use nuncio::internal::options::Mode;
use nuncio::internal::permission::rules::{AccessRequest, Rules, decide};

#[test]
fn remembered_rule_without_a_definition_does_not_apply() {
    let rule = |pattern: Option<&str>, policy| Rule {
        tool: Some("mcp__docs__echo".into()),
        kind: Some(AccessKind::Mcp),
        path: None,
        pattern: pattern.map(Into::into),
        directory: None,
        exact: None,
        policy,
    };
    let cases = [
        (rule(None, Policy::Allow), Policy::Ask),
        (rule(Some("sha256:1"), Policy::Allow), Policy::Allow),
        (rule(Some("sha256:2"), Policy::Allow), Policy::Ask),
        (rule(None, Policy::Deny), Policy::Deny),
    ];
    for (rule, expected) in cases {
        let request = AccessRequest { definition: Some("sha256:1"), ..AccessRequest::new("mcp__docs__echo", AccessKind::Mcp) };
        let rules = Rules { session: vec![rule.clone()], ..Rules::default() };
        assert_eq!(decide(&rules, Mode::Ask, Policy::Ask, &request).policy, expected, "{rule:?}");
        let settings = Rules { user: vec![Rule { pattern: None, ..rule.clone() }], ..Rules::default() };
        assert_eq!(decide(&settings, Mode::Ask, Policy::Ask, &request).policy, rule.policy, "rules of the settings apply");
    }
}
