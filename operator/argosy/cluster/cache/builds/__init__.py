"""What is known of builds by their Jobs and Pods."""
