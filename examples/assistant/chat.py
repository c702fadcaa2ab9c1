"""Chat with the assistant by OpenAI's own client, and print its answer as it comes.

    python chat.py "What is the with statement?"
    python chat.py --url http://localhost:8000/v1 --model assistant --key SECRET "What does len do?"

Each question is answered by itself: the assistant's models know one question and its answer.
"""

import argparse
import sys

import openai


def main() -> int:
    """Print an answer; return 1 if the assistant refused to give one, 2 if the server did not answer."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("prompt")
    parser.add_argument("--url", default="http://localhost:8000/v1", help="where OpenAI's API is")
    parser.add_argument("--model", default="assistant")
    parser.add_argument("--key", default="none", help="an API key, where the server requires one")
    parser.add_argument("--max-tokens", type=int, default=60)
    args = parser.parse_args()
    try:
        with openai.OpenAI(base_url=args.url, api_key=args.key) as client:
            reason = chat(client, args.model, args.prompt, args.max_tokens)
    except openai.OpenAIError as error:
        print(f"{args.url}: {error}", file=sys.stderr)
        return 2
    return 1 if reason == "content_filter" else 0


def chat(client: openai.OpenAI, model: str, prompt: str, max_tokens: int) -> str | None:
    """Print the answer as it comes, and return why it ended."""
    stream = client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": prompt}],
        max_tokens=max_tokens,
        stream=True,
    )
    reason = None
    for chunk in stream:
        (choice,) = chunk.choices
        print(choice.delta.content or "", end="", flush=True)
        reason = choice.finish_reason or reason
    print()
    return reason


if __name__ == "__main__":
    sys.exit(main())
