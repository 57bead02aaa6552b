"""What workloads measure of themselves, scraped from the pods that autoscalers ask about."""
