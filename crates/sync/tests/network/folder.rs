//! A remote that is a folder: what every kind of remote has in common.

use anamnesis_sync::{
    git::{Error, Fetched, Pushed},
    remote::Remote,
};
use git2::Repository;

use crate::{Machine, commit, initialize};

/// A machine and a bare repository beside it.
fn joined() -> (Machine, Remote, Repository) {
    let machine = Machine::new();
    let folder = machine.path("remote.git");
    let bare = initialize(&folder, false);
    let remote = machine.join(folder.to_str().unwrap());
    (machine, remote, bare)
}

#[test]
fn a_pushed_commit_can_be_fetched() {
    let (machine, remote, bare) = joined();
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Empty);
    assert_eq!(machine.incoming(), None);
    machine.send_and_bring(&remote);
    let names: Vec<String> = bare
        .references()
        .unwrap()
        .map(|reference| reference.unwrap().name().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["refs/heads/main"]);
    // Both also succeed without new commits.
    assert_eq!(machine.git().push(&remote, None).unwrap(), Pushed::Done);
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Main);
}

#[test]
fn a_file_address_is_a_folder() {
    let (machine, remote, _bare) = joined();
    let remote = machine.join(&format!("file://{remote}"));
    machine.send_and_bring(&remote);
}

#[test]
fn branches_that_are_not_main_are_named() {
    let (machine, remote, bare) = joined();
    commit(&bare, "refs/heads/master", "README", b"");
    commit(&bare, "refs/heads/next", "README", b"");
    assert_eq!(
        machine.git().fetch(&remote).unwrap(),
        Fetched::NoMain {
            branches: vec!["master".to_owned(), "next".to_owned()]
        }
    );
}

#[test]
fn a_shallow_clone_is_named() {
    let (machine, remote, bare) = joined();
    commit(&bare, "refs/heads/main", "README", b"");
    let first = commit(&bare, "refs/heads/main", "README", b"later");
    std::fs::write(bare.path().join("shallow"), format!("{first}\n")).unwrap();
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(matches!(error, Error::Shallow { .. }), "{error}");
    assert!(error.advice().unwrap().contains("--unshallow"));
}

#[test]
fn a_rewritten_history_is_fetched() {
    let (machine, remote, bare) = joined();
    machine.send_and_bring(&remote);
    bare.find_reference("refs/heads/main")
        .unwrap()
        .delete()
        .unwrap();
    let rewritten = commit(&bare, "refs/heads/main", "other.md", b"");
    let ours = machine
        .repository()
        .refname_to_id("refs/heads/main")
        .unwrap();
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Main);
    assert_eq!(machine.incoming(), Some(rewritten));
    let kept = machine
        .repository()
        .refname_to_id("refs/heads/main")
        .unwrap();
    assert_eq!(kept, ours);
}

#[test]
fn a_push_that_lost_a_race_is_rejected() {
    let (machine, remote, bare) = joined();
    machine.send_and_bring(&remote);
    let theirs = commit(&bare, "refs/heads/main", "theirs.md", b"");
    let ours = machine.commit("ours.md", b"");
    let Pushed::Rejected { reason } = machine.git().push(&remote, None).unwrap() else {
        panic!("pushed over what came before");
    };
    assert_eq!(reason, "fetch first");
    machine.git().fetch(&remote).unwrap();
    let Pushed::Rejected { reason } = machine.git().push(&remote, None).unwrap() else {
        panic!("pushed over what came before");
    };
    assert_eq!(reason, "non-fast-forward");

    // A purge replaces the commit it has seen, and no later one.
    let unseen = commit(&bare, "refs/heads/main", "since.md", b"");
    let Pushed::Rejected { reason } = machine.git().push(&remote, Some(theirs)).unwrap() else {
        panic!("replaced what it had not seen");
    };
    assert_eq!(reason, "stale info");
    assert_eq!(
        machine.git().push(&remote, Some(unseen)).unwrap(),
        Pushed::Done
    );
    assert_eq!(bare.refname_to_id("refs/heads/main").unwrap(), ours);
}

/// The remote's lock on its branch is held: somebody is just now at it, or was killed.
#[test]
fn a_locked_branch_is_a_race() {
    let (machine, remote, bare) = joined();
    machine.send_and_bring(&remote);
    machine.commit("more.md", b"");
    let lock = bare.path().join("refs/heads/main.lock");
    std::fs::write(&lock, "").unwrap();
    let pushed = machine.git().push(&remote, None).unwrap();
    assert!(matches!(pushed, Pushed::Rejected { .. }), "{pushed:?}");
    std::fs::remove_file(&lock).unwrap();
    assert_eq!(machine.git().push(&remote, None).unwrap(), Pushed::Done);
}

#[test]
fn a_remote_that_forbids_rewriting_refuses_it() {
    let (machine, remote, bare) = joined();
    machine.send_and_bring(&remote);
    let mut config = bare.config().unwrap();
    config
        .set_bool("receive.denyNonFastForwards", true)
        .unwrap();
    let theirs = commit(&bare, "refs/heads/main", "theirs.md", b"");
    machine.commit("ours.md", b"");
    let error = machine.git().push(&remote, Some(theirs)).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn a_disconnected_folder_remote_is_offline() {
    let (machine, _remote, _bare) = joined();
    let gone = machine.path("gone.git");
    let remote = machine.join(gone.to_str().unwrap());
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(error.is_offline(), "{error}");
    std::fs::create_dir(&gone).unwrap();
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(matches!(error, Error::NoRepository { .. }), "{error}");
}

/// What a killed git leaves behind is no obstacle. GIT-14.
#[test]
fn leftovers_of_a_killed_git_are_removed() {
    let (machine, remote, _bare) = joined();
    machine.send_and_bring(&remote);
    let git_dir = machine.git_dir();
    std::fs::create_dir_all(git_dir.join("refs/anamnesis")).unwrap();
    for left in [
        "refs/anamnesis/incoming.lock",
        "packed-refs.lock",
        "objects/pack/tmp_pack_x",
    ] {
        std::fs::write(git_dir.join(left), "").unwrap();
    }
    machine.send_and_bring(&remote);
    machine.git().prune_now().unwrap();
    assert_eq!(machine.leftovers(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn unreferenced_objects_are_removed_here_and_in_the_remote() {
    let (machine, remote, bare) = joined();
    let kept = machine.commit("kept.md", b"kept\n");
    let gone = machine.commit("gone.md", b"gone\n");
    machine.git().push(&remote, None).unwrap();
    machine.git().fetch(&remote).unwrap();
    machine.git().gc().unwrap();
    let repository = machine.repository();
    for reference in ["refs/heads/main", "refs/anamnesis/incoming"] {
        repository
            .reference(reference, kept, true, "purge")
            .unwrap();
    }
    assert_eq!(
        machine.git().push(&remote, Some(gone)).unwrap(),
        Pushed::Done
    );
    machine.git().prune_now().unwrap();
    machine
        .git()
        .prune_remote(remote.folder().unwrap())
        .unwrap();
    for path in [machine.git_dir(), bare.path().to_owned()] {
        let repository = Repository::open(path).unwrap();
        assert!(repository.find_commit(kept).is_ok());
        assert!(repository.find_commit(gone).is_err());
    }
    let nothing = machine
        .git()
        .prune_remote(&machine.path("home"))
        .unwrap_err();
    assert!(matches!(nothing, Error::NoRepository { .. }), "{nothing}");
}
