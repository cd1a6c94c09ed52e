"""Shows a table as one comment of a pull request: later runs update it, and say so when nothing differs any more.

The event, the token and the API's address come from the variables of GitHub's runners. A token that may not write
(pull requests of forks) is no failure: the table is in the job's summary, and a notice says so.
"""

import json
import os
import sys
import urllib.error
import urllib.request

# the API takes 65536 letters
LIMIT = 60000
PAGE = 100


def request(method, url, body=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {
        "Accept": "application/vnd.github+json",
        "Authorization": f"Bearer {os.environ['INPUT_TOKEN']}",
        "X-GitHub-Api-Version": "2022-11-28",
        "Content-Type": "application/json",
    }
    with urllib.request.urlopen(urllib.request.Request(url, data, headers, method=method), timeout=60) as answer:
        return json.load(answer)


def existing(comments, marker):
    """The address of this action's earlier comment: its first line is the marker, and a bot wrote it."""
    page = 1
    while True:
        found = request("GET", f"{comments}?per_page={PAGE}&page={page}")
        for comment in found:
            if comment["body"].startswith(marker) and comment["user"]["type"] == "Bot":
                return comment["url"]
        if len(found) < PAGE:
            return None
        page += 1


def shortened(text):
    if len(text) <= LIMIT:
        return text
    lines, size = [], 0
    for line in text.splitlines(keepends=True):
        size += len(line)
        if size > LIMIT:
            break
        lines.append(line)
    return "".join(lines) + "\nThe rest is in the job's summary.\n"


def main():
    with open(os.environ["GITHUB_EVENT_PATH"]) as file:
        event = json.load(file)
    number = (event.get("pull_request") or {}).get("number")
    if not isinstance(number, int):
        print("this event is of no pull request: no comment")
        return
    key = "".join(letter for letter in os.environ["INPUT_COMMENT_KEY"] if letter.isalnum() or letter in "-_.")
    marker = f"<!-- tallyline: {key} -->"
    with open(os.environ["INPUT_TABLE"], encoding="utf-8") as file:
        table = file.read()
    commit = event["pull_request"]["head"]["sha"][:12]
    body = shortened(f"{marker}\n### Layout differences\n\n{table}\n") + f"\n<sub>at {commit}</sub>\n"
    repository = f"{os.environ['GITHUB_API_URL']}/repos/{os.environ['GITHUB_REPOSITORY']}"
    comments = f"{repository}/issues/{number}/comments"
    try:
        earlier = existing(comments, marker)
        if earlier:
            # by its number under our own address: an answer does not say where the token goes
            request("PATCH", f"{repository}/issues/comments/{int(earlier.rsplit('/', 1)[1])}", {"body": body})
            print("the comment is updated")
        elif os.environ["INPUT_CHANGED"] == "true":
            request("POST", comments, {"body": body})
            print("a comment is added")
        else:
            print("no differences: no comment")
    except urllib.error.HTTPError as error:
        if error.code not in (401, 403, 404):
            raise
        print(f"::notice title=tallyline::the token may not comment here ({error.code}); the table is in the summary")


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, KeyError) as error:
        print(f"::error title=tallyline::cannot comment: {error!r}")
        sys.exit(1)
