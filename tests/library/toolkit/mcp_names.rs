//! Names of MCP tools for models.

use nuncio::internal::toolkit::mcp_tool_names;

#[track_caller]
fn check(tools: &[(&str, &str)], expected: &[&str]) {
    assert_eq!(mcp_tool_names(tools), expected);
    let mut reversed: Vec<_> = tools.to_vec();
    reversed.reverse();
    let mut names = mcp_tool_names(&reversed);
    names.reverse();
    assert_eq!(names, expected, "independent of the order");
}

#[test]
fn names_are_accepted_by_all_providers_and_distinct() {
    check(&[("docs", "search"), ("docs", "read_it")], &["mcp__docs__search", "mcp__docs__read_it"]);
    check(&[("my docs", "a.b/c")], &["mcp__my_docs__a_b_c"]);
    check(&[("s", "a.b"), ("s", "a_b"), ("s", "a/b")], &["mcp__s__a_b_407e8e5c", "mcp__s__a_b", "mcp__s__a_b_fb3c0e4c"]);
    check(&[("a__b", "c"), ("a", "b__c")], &["mcp__a__b__c_a92700ce", "mcp__a__b__c"]);
    let long = "x".repeat(100);
    let names = mcp_tool_names(&[("s", &long), ("s", &format!("{long}y"))]);
    assert!(names.iter().all(|name| name.len() == 64) && names[0] != names[1], "{names:?}");
}
