//! Workspaces over HTTP and on the command line: who has access to them.

use serde_json::json;

use super::{git, linked, repository};

#[tokio::test]
async fn workspaces_over_http() {
    needs_linux!("sandbox");
    let home = repository();
    let server = home.serve_script(json!([{"text": "hello"}]), &[]).await;
    let created = server.post("/v1/workspaces", &json!({"name": "x"})).expect(201).await;
    let workspace = &created["workspace"];
    let path = format!("/v1/workspaces/{}", workspace["workspaceId"].as_str().unwrap());
    assert_eq!(server.get(&path).expect(200).await["name"], "x");
    // A session in the workspace, which is outside the roots of the server.
    let session = server.post("/v1/sessions", &json!({"cwd": workspace["path"]})).expect(201).await;
    let id = session["sessionId"].as_str().unwrap();
    server.prompt(id, "hi").expect(200).await;
    let listed = server.get("/v1/workspaces").expect(200).await;
    assert_eq!(listed["workspaces"][0]["sessions"][0]["sessionId"], id, "{listed}");
    // Another directory of the data stays inaccessible.
    let elsewhere = home.data().join("worktrees");
    server.post("/v1/sessions", &json!({"cwd": elsewhere})).expect(403).await;
    let named = server.ask("DELETE", &path).expect(200).await;
    assert_eq!(named["deleted"], false, "{named}");
    assert_eq!(linked(&home).len(), 1);
    let confirm = named["confirm"].as_str().unwrap();
    let deleted = server.ask("DELETE", &format!("{path}?confirm={confirm}")).expect(200).await;
    assert_eq!(deleted["deleted"], true, "{deleted}");
    server.get(&path).expect(404).await;
    // The session in the deleted workspace can still be read.
    server.get(&format!("/v1/sessions/{id}/messages")).expect(200).await;
    server.stop().await;
}

#[tokio::test]
async fn tokens_see_only_workspaces_of_their_roots() {
    needs_linux!("sandbox");
    let home = repository();
    let other = home.work().join("other");
    git(&home.work(), &["clone", "--quiet", ".", "other"]);
    let token = async |name: &str, arguments: &[&str]| {
        let ran = home.run(&[&["token", "new", name], arguments].concat(), "").await;
        assert_eq!(ran.code, 0, "{ran:?}");
        ran.stdout.trim().to_owned()
    };
    let limited = token("limited", &["--root", other.to_str().unwrap()]).await;
    let observer = token("observer", &["--role", "observer"]).await;
    let server = home.serve(&[]).await;
    let outer = server.post("/v1/workspaces", &json!({"name": "outer"})).expect(201).await["workspace"].clone();
    let limited = server.with_token(&limited);
    limited.post("/v1/workspaces", &json!({"cwd": home.work()})).expect(403).await;
    let inner = limited.post("/v1/workspaces", &json!({"cwd": other})).expect(201).await["workspace"].clone();
    let listed = limited.get("/v1/workspaces").expect(200).await;
    assert_eq!(listed["workspaces"].as_array().unwrap().len(), 1, "{listed}");
    assert_eq!(listed["workspaces"][0]["workspaceId"], inner["workspaceId"]);
    let path = format!("/v1/workspaces/{}", outer["workspaceId"].as_str().unwrap());
    limited.get(&path).expect(403).await;
    limited.ask("DELETE", &path).expect(403).await;
    limited.post("/v1/sessions", &json!({"cwd": outer["path"]})).expect(403).await;
    limited.post("/v1/sessions", &json!({"cwd": inner["path"]})).expect(201).await;
    // A reference to a repository outside the roots gives no access to it.
    std::fs::remove_dir_all(other.join(".git")).unwrap();
    std::fs::write(other.join(".git"), format!("gitdir: {}/.git\n", home.work().display())).unwrap();
    limited.post("/v1/workspaces", &json!({"cwd": other})).expect(403).await;
    let observer = server.with_token(&observer);
    observer.get(&path).expect(200).await;
    observer.post("/v1/workspaces", &json!({})).expect(403).await;
    observer.ask("DELETE", &path).expect(403).await;
    server.stop().await;
}

#[tokio::test]
async fn workspaces_on_the_command_line() {
    needs_linux!("sandbox");
    let home = repository();
    let created = home.run(&["workspaces", "create", "fix", "--base", "main"], "").await;
    let path = std::path::PathBuf::from(created.stdout.trim_end());
    assert!(created.code == 0 && path.is_dir(), "{created:?}");
    std::fs::write(path.join("new"), "").unwrap();
    std::fs::write(path.join(".env"), "").unwrap();
    let list = home.run(&["workspaces", "list", "--here"], "").await.stdout;
    assert!(list.contains(".fix  nuncio/fix  ") && list.contains("1 untracked"), "{list}");
    let named = home.run(&["workspaces", "delete", "fix"], "").await;
    assert_eq!(named.code, 0, "{named:?}");
    for line in ["would lose:", "  1 untracked: new", "  1 ignored: .env", "to delete it: nuncio workspaces delete "] {
        assert!(named.stdout.contains(line), "{named:?}");
    }
    assert!(path.join("new").exists());
    let token = named.stdout.trim_end().rsplit(' ').next().unwrap().to_owned();
    std::fs::write(path.join("newer"), "").unwrap();
    let refused = home.run(&["workspaces", "delete", "fix", "--confirm", &token], "").await;
    assert!(refused.code == 1 && refused.stdout.contains("has changed since"), "{refused:?}");
    let token = refused.stdout.trim_end().rsplit(' ').next().unwrap().to_owned();
    let deleted = home.run(&["workspaces", "delete", "fix", "--confirm", &token], "").await;
    assert!(deleted.code == 0 && !path.exists(), "{deleted:?}");
    let missing = home.run(&["workspaces", "delete", "fix"], "").await;
    assert!(missing.code != 0 && missing.stderr.contains("not found"), "{missing:?}");
}

#[tokio::test]
async fn results_have_changes_only_with_access_to_the_whole_workspace() {
    needs_linux!("sandbox");
    let home = repository();
    home.put("part/b", "b\n");
    git(&home.work(), &["add", "part"]);
    git(&home.work(), &["commit", "--quiet", "--message", "part"]);
    let part = home.work().join("part");
    let ran = home.run(&["token", "new", "limited", "--root", part.to_str().unwrap()], "").await;
    let server = home.serve(&[]).await;
    let workspace = server.post("/v1/workspaces", &json!({})).expect(201).await["workspace"].clone();
    let path = std::path::Path::new(workspace["path"].as_str().unwrap());
    std::fs::write(path.join("secret"), "x").unwrap();
    let session = server.post("/v1/sessions", &json!({"cwd": path.join("part")})).expect(201).await;
    let result = format!("/v1/sessions/{}/result?diff=true", session["sessionId"].as_str().unwrap());
    assert_eq!(server.get(&result).expect(200).await["changes"], "?? secret");
    let limited = server.with_token(ran.stdout.trim()).get(&result).expect(200).await;
    assert_eq!((limited.get("changes"), limited.get("diff"), limited.get("workspaceId")), (None, None, None), "{limited}");
    server.stop().await;
}
