//! The `diagram` tool.

use super::*;
use harness::Random;

/// The texts of an SVG drawing, in order.
fn texts(svg: &str) -> Vec<String> {
    let inner = |piece: &str| piece.split_once('>').map(|(_, text)| text.split('<').next().unwrap().trim().to_owned());
    svg.split("<tspan").skip(1).filter_map(inner).filter(|text| !text.is_empty()).collect()
}

async fn draw(world: &World, source: &str) -> Result<String, String> {
    let output = world.call("diagram", json!({ "source": source })).await.map_err(|error| error.0)?;
    let svg = std::fs::read_to_string(output.details["artifact"].as_str().unwrap()).unwrap();
    assert!(svg.starts_with("<?xml") && svg.ends_with("</svg>") && !svg.contains("NaN"), "{source}: {svg}");
    Ok(svg)
}

#[tokio::test]
async fn graph_is_drawn_into_an_artifact() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    let source = "digraph { a -> b -> c [label=\"to < c\"]; b [shape=box label=\"B & co\\nmore\"]; subgraph cluster_x { d } }";
    let output = world.call("diagram", json!({ "source": source, "format": "svg" })).await.unwrap();
    let artifact = world.context.workspace.artifacts.join("diagram-1.svg");
    let svg = std::fs::read_to_string(&artifact).unwrap();
    let told = format!("drew 4 nodes and 2 edges: {}\n[clusters are drawn without frames]", artifact.display());
    assert_eq!(plain_text(&output.parts), told);
    let details = json!({"artifact": artifact, "format": "svg", "bytes": svg.len(), "nodes": 4, "edges": 2});
    assert_eq!(output.details, details);
    assert_eq!(std::fs::metadata(&artifact).unwrap().permissions().mode() & 0o777, 0o600);
    for text in ["a", "B &amp; co", "more", "c", "d", "to &lt; c"] {
        assert!(texts(&svg).contains(&text.to_owned()), "{text}: {svg}");
    }
    world.call("diagram", json!({ "source": source })).await.unwrap();
    assert!(world.context.workspace.artifacts.join("diagram-2.svg").exists());
    let png = world.told("diagram", json!({"source": "graph { a }", "format": "png"})).await;
    assert!(png.starts_with("error diagram: format: unknown variant `png`, expected `svg`"), "{png}");
}

#[tokio::test]
async fn dot_syntax_is_parsed() {
    let world = World::new();
    let rows = [
        ("graph { a -- b }", "a b"),
        ("strict digraph \"a name\" { a -> b; a -> b }", "a b"),
        ("/* one */ digraph { // two\n# three\na }", "a"),
        ("DIGRAPH G { Node [shape=box]; a Edge [color=red] a -> b }", "a b"),
        ("digraph { _under -> größe -> -1.5 -> \"with \\\"quotes\\\"\" }", "_under größe -1.5 with &quot;quotes&quot;"),
        ("digraph { a -> {b c} -> d; {e f} }", "a b c d e f"),
        ("digraph { subgraph s { node [label=x]; a } -> b }", "x b"),
        ("digraph { \"a\" + \"b\" [label=<<b>bold</b><br/>next &amp; last>] }", "bold next &amp; last"),
        ("digraph { a [shape=record label=\"<p> one | { two | three } | \\| four\"]; b; a:p -> b:n }", "one two three | four b"),
        ("digraph { rankdir=LR; a -> b -> a; a -> a }", "a b"),
        (
            "digraph { a [label=\"\\N!\", shape=Mrecord, fillcolor=\"#ff000\", style=\"filled,rounded\", penwidth=1e9, fontsize=-3] }",
            "a!",
        ),
        ("digraph { a -> b [label=l dir=both style=dashed color=\"red:blue\"]; a -> b [dir=back label=\"\"] }", "a b l"),
    ];
    for (source, expected) in rows {
        let svg = draw(&world, source).await.unwrap_or_else(|error| panic!("{source}: {error}"));
        assert_eq!(texts(&svg).join(" "), expected, "{source}");
    }
}

#[tokio::test]
async fn errors_name_the_line() {
    let world = World::new();
    let deep = format!("graph {{ {}", "{".repeat(30));
    let many: String = (0..201).map(|number| format!("n{number};")).collect();
    let fan = |count: usize| (0..count).map(|number| format!("n{number} ")).collect::<String>();
    let rows = [
        ("", "line 1: expected graph or digraph, found the end"),
        ("flowchart TD", "line 1: expected graph or digraph, found \"flowchart\""),
        ("digraph {\n  a -> ;\n}", "line 2: expected a node, an edge or '}', found ';'"),
        ("digraph {\n  a -> b\n", "line 3: expected a node, an edge or '}', found the end"),
        ("digraph {\n\na [label=\n]}", "line 4: expected a value, found ']'"),
        ("digraph { a ]", "line 1: expected a node, an edge or '}', found ']'"),
        ("digraph { \"a }", "line 1: the quoted string is not closed"),
        ("digraph { a [label=<b] }", "line 1: the HTML string is not closed by >"),
        ("digraph {\n/* }", "line 2: the comment is not closed"),
        ("digraph { a.b }", "line 1: unexpected '.'; quote names with such characters"),
        ("digraph { a$b }", "line 1: unexpected '$'; quote names with such characters"),
        ("digraph { a } digraph { b }", "line 1: expected the end (only one graph can be drawn), found \"digraph\""),
        ("digraph { }", "the graph has no nodes"),
        (deep.as_str(), "line 1: expected at most 20 nested subgraphs, found '{'"),
        (&format!("graph {{ {many} }}"), "line 1: expected at most 200 nodes, found ';'"),
        (&format!("graph {{ {{ {0} }} -- {{ {0} }} }}", fan(30)), "line 1: expected at most 400 edges, found '}'"),
        (&"x".repeat(70_000), "more than 64 KiB; draw a part of the graph"),
    ];
    for (source, expected) in rows {
        let told = draw(&world, source).await.unwrap_err();
        assert_eq!(told, format!("source: {expected}"), "{}", &source[..source.len().min(80)]);
    }
    let chain: String = (0..100).map(|number| format!("n{number} -> n{}; n0 -> n{number};", number + 1)).collect();
    let told = draw(&world, &format!("digraph {{ {chain} }}")).await.unwrap_err();
    assert!(told.starts_with("source: the graph is too large: 101 nodes, and edges with 4"), "{told}");
}

/// Fully connected layers have exponentially many paths; the layout must not search them.
#[tokio::test]
async fn layout_time_is_bounded() {
    let world = World::new();
    let layer = |number: usize| format!("{{ a{number} b{number} c{number} d{number} }}");
    let layers: Vec<String> = (0..20).map(layer).collect();
    draw(&world, &format!("digraph {{ {} }}", layers.join(" -> "))).await.unwrap();
    let mut random = Random::new();
    let mut drawn = 0;
    for _ in 0..40 {
        let nodes = 2 + random.below(12);
        let edge = |random: &mut Random| {
            let label = if random.below(3) == 0 { " [label=x]" } else { "" };
            format!("n{} -> n{}{label};", random.below(nodes), random.below(nodes))
        };
        let edges: String = (0..random.below(20)).map(|_| edge(&mut random)).collect();
        match draw(&world, &format!("digraph {{ n0; {edges} }}")).await {
            Ok(_) => drawn += 1,
            Err(told) => assert!(told.contains("the layout failed"), "{told}"),
        }
    }
    assert!(drawn > 35, "{drawn}");
}
