/** The agent sees one commit of history: what came before tells of style alone, and what came after holds the answer. */

/**
 * Makes the commit anew from the index, without parents, and leaves the old objects behind. The work tree and the index
 * stay as they are, also where an image's build changed files. An image without git has no use of the folder. Everything
 * stays on the file system of the work tree: git renames packs, and /tmp is another one.
 */
export const oneCommit = `set -e
if [ -e .git ]; then
  if command -v git >/dev/null && [ -d .git ]; then
    git config --global --add safe.directory "$PWD"
    commit=$(git -c user.name=task -c user.email=task@localhost commit-tree -m 'The task' "$(git write-tree)")
    kept=$PWD/.git-one-commit
    mkdir "$kept"
    echo "$commit" | git pack-objects -q --revs "$kept/pack" >/dev/null
    cp .git/index "$kept/index"
    rm -rf .git
    git init -q .
    mkdir -p .git/objects/pack
    mv "$kept"/pack* .git/objects/pack/
    mv "$kept/index" .git/index
    rmdir "$kept"
    git update-ref HEAD "$commit"
  else
    rm -rf .git
  fi
fi`;
